"""What work costs: bytes, arithmetic, and the limits of the device."""
