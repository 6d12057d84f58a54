// Package layers is what networks are put together from: layers with forward and
// backward, on the CPU, in float32.
package layers
