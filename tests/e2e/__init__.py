"""The whole product, over the wire: what a user of Midwatch gets, sentence by sentence."""
