package schedule

import "strconv"

// String prints s as a heading and one line a round. It is the format of
// Parse and of the golden files: a name (without a line break), then
//
//	all-reduce(ring): 2 ranks, 2 chunks
//	  0   0→1 [1]+  1→0 [0]+
//	  1   1→0 [1]  0→1 [0]
func (s Schedule) String() string {
	b := append([]byte(s.Name), ": "...)
	b = strconv.AppendInt(b, int64(s.Ranks), 10)
	b = append(b, " ranks, "...)
	b = strconv.AppendInt(b, int64(s.Chunks), 10)
	b = append(b, " chunks\n"...)
	for i, round := range s.Rounds {
		for width := 100; width > max(i, 1); width /= 10 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(i), 10)
		for j, m := range round {
			if j == 0 {
				b = append(b, ' ')
			}
			b = m.append(append(b, "  "...))
		}
		b = append(b, '\n')
	}
	return string(b)
}

// String prints m as "0→1 [2]" for a copy of chunk 2, "0→1 [2:4]" for chunks
// 2 and 3, "0→1 [2]→[5]" when they land elsewhere, with "+" after it when they
// are folded into what is there.
func (m Move) String() string { return string(m.append(nil)) }

func (m Move) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(m.From), 10)
	b = append(b, "→"...)
	b = strconv.AppendInt(b, int64(m.To), 10)
	b = appendSpan(append(b, ' '), m.Src, m.N)
	if m.Dst != m.Src {
		b = appendSpan(append(b, "→"...), m.Dst, m.N)
	}
	if m.Reduce {
		b = append(b, '+')
	}
	return b
}

func appendSpan(b []byte, lo, n int) []byte {
	b = append(b, '[')
	b = strconv.AppendInt(b, int64(lo), 10)
	if n != 1 {
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(lo)+int64(n), 10)
	}
	return append(b, ']')
}
