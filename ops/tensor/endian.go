//go:build armbe || arm64be || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || sparc || sparc64

package tensor

// A message is the memory of a little-endian host as it stands (doc.go says
// why). On these hosts it would be read wrongly, so the build stops here.
var _ = peermesh_needs_a_little_endian_host
