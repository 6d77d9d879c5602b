"""The optimal policies of an arm at every price of its work."""
