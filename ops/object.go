package ops

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
)

// Objects are Go values of any type that encoding/gob can carry: its exported
// fields, and what an interface holds if its type is registered. The collectives of
// objects are functions and not methods, which cannot have type parameters, and they
// block; otherwise they have their place in the group's order as all others.
//
// What is of the wrong size, or cannot be encoded, is known to all ranks before any
// object moves: every rank gets an *ObjectError that names it, and the group goes on.

// DefaultMaxObject bounds the encoding of an object where Config.MaxObject is zero.
const DefaultMaxObject = 64 << 20

// An ObjectError says that a rank's object could not be sent or taken: its encoding
// is too large, or there is none. Every rank that takes part gets it, and the group
// goes on.
type ObjectError struct {
	Rank int   // whose object, in the world
	Size int64 // of its encoding, in bytes; −1 if it could not be encoded
	Max  int64 // Config.MaxObject
	Err  error // why it could not be encoded or decoded, on the rank where that was
}

func (e *ObjectError) Error() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("ops: object of rank %d: %v", e.Rank, e.Err)
	case e.Size < 0:
		return fmt.Sprintf("ops: object of rank %d could not be encoded there", e.Rank)
	}
	return fmt.Sprintf("ops: object of rank %d has %d bytes, more than the %d of Config.MaxObject", e.Rank, e.Size, e.Max)
}

func (e *ObjectError) Unwrap() error { return e.Err }

// BroadcastObject returns v of rank src on every rank; the others' v do not count.
func BroadcastObject[T any](ctx context.Context, g *Group, v T, src int) (T, error) {
	return one[T](g.parcels(ctx, KindBroadcastObject, src, func(root bool) ([][]byte, error) {
		if !root {
			return nil, nil
		}
		return encodeAll([]T{v})
	}))
}

// ScatterObject returns the r-th of rank src's values on rank r. There are as many as
// ranks; elsewhere vs is nil.
func ScatterObject[T any](ctx context.Context, g *Group, vs []T, src int) (T, error) {
	return one[T](g.parcels(ctx, KindScatterObject, src, func(root bool) ([][]byte, error) {
		switch {
		case root && len(vs) != g.Size():
			return nil, &badCall{argument(KindScatterObject, "vs has %d values: want one for each of %d ranks", len(vs), g.Size())}
		case !root && vs != nil:
			return nil, &badCall{argument(KindScatterObject, "vs is given by rank %d: it is for the root", g.Global(g.Rank()))}
		}
		return encodeAll(vs)
	}))
}

// GatherObject returns every rank's v, by rank, on rank dst; elsewhere nil.
func GatherObject[T any](ctx context.Context, g *Group, v T, dst int) ([]T, error) {
	return decodeAll[T](g.parcels(ctx, KindGatherObject, dst, func(bool) ([][]byte, error) { return encodeAll([]T{v}) }))
}

// AllGatherObject returns every rank's v, by rank, on every rank.
func AllGatherObject[T any](ctx context.Context, g *Group, v T) ([]T, error) {
	return decodeAll[T](g.parcels(ctx, KindAllGatherObject, noRoot, func(bool) ([][]byte, error) { return encodeAll([]T{v}) }))
}

// An encoding is an object on its way, and whose it is by its rank in the world.
type encoding struct {
	rank int
	p    []byte
}

// An envelope lets a nil pointer or interface be an object.
type envelope[T any] struct{ V T }

func encodeAll[T any](vs []T) (all [][]byte, err error) {
	for _, v := range vs {
		p, err := encodeObject(v)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func encodeObject[T any](v T) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(envelope[T]{v}); err != nil {
		return nil, fmt.Errorf("ops: %T as an object: %w", v, err)
	}
	return b.Bytes(), nil
}

// decodeObject reads what a peer has encoded. gob takes no count or length on trust
// that the bytes do not bear out, so what it allocates grows with them.
func decodeObject[T any](p []byte) (v T, err error) {
	var e envelope[T]
	r := bytes.NewReader(p)
	if err := gob.NewDecoder(r).Decode(&e); err != nil {
		return v, fmt.Errorf("as %T: %w", v, err)
	}
	if r.Len() > 0 {
		return v, fmt.Errorf("as %T: %d bytes after its end", v, r.Len())
	}
	return e.V, nil
}

func decodeAll[T any](all []encoding, err error) ([]T, error) {
	if err != nil || all == nil {
		return nil, err
	}
	vs := make([]T, len(all))
	for i, e := range all {
		if vs[i], err = decodeObject[T](e.p); err != nil {
			return nil, &ObjectError{Rank: e.rank, Size: int64(len(e.p)), Err: err}
		}
	}
	return vs, nil
}

// one is the only object of several that may be none, which a process that is not a
// member gets.
func one[T any](all []encoding, err error) (v T, _ error) {
	vs, err := decodeAll[T](all, err)
	if err != nil || len(vs) == 0 {
		return v, err
	}
	return vs[0], nil
}
