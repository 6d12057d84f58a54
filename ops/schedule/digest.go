package schedule

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest sums up the ranks, the chunks and every move of s, in order, but not
// its name. Ranks compare digests before they run a schedule, to find out by
// mistake, not by malice, that they hold different ones: it is a CRC-32C and
// proves nothing.
func (s Schedule) Digest() uint32 {
	var sum uint32
	b := binary.AppendVarint(make([]byte, 0, 4096), int64(s.Ranks))
	b = binary.AppendVarint(b, int64(s.Chunks))
	for _, round := range s.Rounds {
		b = binary.AppendVarint(b, int64(len(round)))
		for _, m := range round {
			fold := 0
			if m.Reduce {
				fold = 1
			}
			for _, v := range [...]int{m.From, m.To, m.Src, m.Dst, m.N, fold} {
				b = binary.AppendVarint(b, int64(v))
			}
		}
		sum = crc32.Update(sum, castagnoli, b)
		b = b[:0]
	}
	return crc32.Update(sum, castagnoli, b)
}
