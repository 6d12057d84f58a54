// Package parting is how a run takes leave of a world that has ended.
package parting

import (
	"context"
	"time"
)

// Patience bounds how long Wait does. A mesh's worlds are done within a second of their
// ends; others may not be.
const Patience = 2 * time.Second

// Wait waits until the others know why a world has ended, if there is one, it has, and it
// says by a method Done when they do: the caller may exit then, and without this they
// would see no more than that.
func Wait(w interface{ Context() context.Context }) {
	d, ok := w.(interface{ Done() <-chan struct{} })
	if !ok || w.Context().Err() == nil {
		return
	}
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-d.Done():
	case <-timer.C:
	}
}
