package mesh

import "peermesh/node"

// lendSize bounds a piece that is lent, so that the sender fills what has been taken
// while the next is.
const lendSize = 64 << 10

// A loan is what Stream.Lend is about to lend.
type loan struct {
	left int64 // bytes of the message
	land func(p []byte) error
	err  error                             // of land
	use  func(p []byte) (n int, err error) // take, made once
}

// take has land take a piece where it lies. Too few bytes for one stay.
func (o *loan) take(p []byte) (int, error) {
	if int64(len(p)) < o.left {
		p = p[:len(p)&^(pieceAlign-1)]
	}
	if len(p) > 0 {
		o.err = o.land(p)
	}
	return len(p), nil
}

// lend lends the next piece to land, past the buffer: none if the stream cannot, or
// if the piece has begun in the buffer or is too short.
func (l *inLane) lend(left int64, land func(p []byte) error) (int, error) {
	if l.r < l.n || l.end != nil || !l.stream.Lends() {
		return 0, nil
	}
	if l.loan.use == nil {
		l.loan.use = l.loan.take
	}
	l.loan.left, l.loan.land = left, land
	n, err := l.stream.Lend(int(min(left, lendSize)), l.loan.use)
	l.loan.land = nil
	if n > 0 {
		l.total.Add(int64(n))
		l.link.hear()
	}
	if err != nil && !node.IsTimeout(err) {
		l.end = err
	}
	return n, err
}
