//go:build !unix

package scale

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }

// peak is not known here.
func peak() int64 { return 0 }
