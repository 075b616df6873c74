"""From the three input frames to exact tables; no noise is drawn here."""
