"""Facts about datasets that the command line and the viewer both show."""
