package ops

// DefaultMaxObject bounds the encoding of an object where Config.MaxObject is zero.
const DefaultMaxObject = 64 << 20
