"""Timers of other projects and ours, on one PostgreSQL, each as its documentation says is best."""
