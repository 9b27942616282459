"""Gates: rules of this code base that a machine keeps. Each is shown red on planted code."""
