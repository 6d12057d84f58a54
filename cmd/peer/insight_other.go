//go:build !unix

package main

import "io"

// onSignals does nothing: there are no such signals.
func (i *insight) onSignals(io.Writer) (stop func()) { return func() {} }

// passOn does nothing either.
func (c *crew) passOn() (stop func()) { return func() {} }
