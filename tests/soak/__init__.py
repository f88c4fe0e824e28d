"""make soak: minutes of real processes, killed at random, with providers that fail. Nothing may be lost."""
