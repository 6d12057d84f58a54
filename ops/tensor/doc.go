// Package tensor holds what collectives move: elements of a known type in some
// memory, and the arithmetic that folds a message into them.
package tensor
