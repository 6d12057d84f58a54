package watch

import (
	"encoding/json"
	"math"
)

// A Number is null in JSON where that has no word for it: a loss that has become
// infinite or not a number.
type Number float64

// MarshalJSON writes a number as encoding/json does, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// maxPoints bounds a curve: as many as a screen has columns to show them in.
const maxPoints = 512

// A Curve is a number by steps, thinned out as it grows: when it is full every other
// point goes, and from then on only every second, fourth … of those that come is
// kept. The last is always there.
type Curve struct {
	Points [][2]Number `json:"points"` // step and value
	stride int         // of those that come, one in so many is kept
	skip   int         // until the next that is
	loose  bool        // the last point is only there because it is the last
}

// add appends a point.
func (c *Curve) add(step, value float64) {
	if c.stride == 0 {
		c.stride = 1
	}
	if c.loose {
		c.Points = c.Points[:len(c.Points)-1]
	}
	c.Points = append(c.Points, [2]Number{Number(step), Number(value)})
	if c.loose = c.skip > 0; c.loose {
		c.skip--
		return
	}
	c.skip = c.stride - 1
	if len(c.Points) < maxPoints {
		return
	}
	kept := c.Points[:0]
	for i := 1; i < len(c.Points); i += 2 {
		kept = append(kept, c.Points[i])
	}
	c.Points = kept
	c.stride *= 2
	c.skip = c.stride - 1
}

// copied is the curve as it is now.
func (c *Curve) copied() Curve { return Curve{Points: append([][2]Number{}, c.Points...)} }
