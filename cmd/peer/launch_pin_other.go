//go:build !linux

package main

// ownCores are not to be had here.
func ownCores() []int { return nil }

// pinThread leaves threads where they are.
func pinThread([]int) (undo func()) { return func() {} }
