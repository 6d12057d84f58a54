package layers

import "math"

// exp32 is eˣ to about two units in the last place, at a fifth of math.Exp's cost:
// 2ᵏ·eʳ, with |r| ≤ ln 2 / 2 and the polynomial of Cephes' expf (Moshier, 1989).
// Below e^-87 it is zero, above e^88 it is infinite.
func exp32(x float32) float32 {
	const (
		ln2High = 0.693359375
		ln2Low  = -2.12194440e-4
		limit   = 88
	)
	switch {
	case x < -87:
		return 0
	case x > limit:
		return float32(math.Inf(1))
	case x != x:
		return x
	}
	k := int32(x*math.Log2E + 127.5) // truncates what is positive
	f := float32(k - 127)
	r := x - f*ln2High - f*ln2Low
	p := float32(1.9875691500e-4)
	p = p*r + 1.3981999507e-3
	p = p*r + 8.3334519073e-3
	p = p*r + 4.1665795894e-2
	p = p*r + 1.6666665459e-1
	p = p*r + 5.0000001201e-1
	return (p*r*r + r + 1) * math.Float32frombits(uint32(k)<<23)
}

// tanh32 is off by at most 2.5e-7.
func tanh32(x float32) float32 { return 1 - 2/(exp32(2*x)+1) }
