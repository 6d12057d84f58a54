package watch

import (
	"encoding/json"
	"math"
	"strconv"
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
	Points Points `json:"points"`
	stride int    // of those that come, one in so many is kept
	skip   int    // until the next that is
	loose  bool   // the last point is only there because it is the last
}

// Points are steps and values.
type Points [][2]float64

// MarshalJSON writes them with six digits, which a picture cannot show, and by hand:
// twice a second, encoding/json would take longer for them than for all the rest.
func (p Points) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+20*len(p)), '[')
	return append(p.append(b, 0), ']'), nil
}

// append writes points into an array that has so many.
func (p Points) append(b []byte, before int) []byte {
	for i, point := range p {
		if before+i > 0 {
			b = append(b, ',')
		}
		b = appendNumbers(b, point[:])
	}
	return b
}

// appendNumbers writes an array.
func appendNumbers(b []byte, list []float64) []byte {
	b = append(b, '[')
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if whole := int64(x); float64(whole) == x {
			b = strconv.AppendInt(b, whole, 10)
		} else if math.IsNaN(x) || math.IsInf(x, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, x, 'g', 6, 64)
		}
	}
	return append(b, ']')
}

// add appends a point.
func (c *Curve) add(step, value float64) {
	if c.stride == 0 {
		c.stride = 1
	}
	if c.loose {
		c.Points = c.Points[:len(c.Points)-1]
	}
	c.Points = append(c.Points, [2]float64{step, value})
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

// renew has a curve be as another is now, in the memory that it has.
func (c *Curve) renew(from *Curve) {
	points := append(c.Points[:0], from.Points...)
	*c = *from
	c.Points = points
}
