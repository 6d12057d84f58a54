//go:build !linux || !(amd64 || arm64)

package fake

import "errors"

const linkable = false

func find(_, _ string) (uintptr, error) { return 0, errors.ErrUnsupported }

func invoke(uintptr, ...uintptr) uintptr { return 0 }
