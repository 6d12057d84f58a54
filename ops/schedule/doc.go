// Package schedule describes collective operations as values: rounds of
// simultaneous moves over the whole world.
package schedule
