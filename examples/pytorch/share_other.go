//go:build !linux

package main

import (
	"errors"
	"fmt"
)

// A shared is memory of this process that another maps too, which needs Linux.
type shared struct{ data []byte }

func share(int) (shared, error) {
	return shared{}, fmt.Errorf("memory to share with another process needs Linux: %w", errors.ErrUnsupported)
}

func (shared) rights() []byte { return nil }
func (shared) close() error   { return nil }
