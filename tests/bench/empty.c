// A preloaded library that does nothing: what LD_PRELOAD itself costs.
