// Package bytesize has the words for numbers of bytes: those that people read, and those that
// they write on command lines and in scenarios.
//
//	bytesize.Text(64 << 10)     // 64 KiB
//	bytesize.Flag(500e6)        // 500MB, which Parse reads
//	bytesize.Parse("1.5MiB")    // 1572864
//
// kB, MB and GB are powers of 1000, and KiB, MiB and GiB of 1024 (IEC 80000-13); a number
// alone counts bytes. Nothing is rounded on the way out: 1536 bytes are 1536 B. What is
// measured, as a rate is, has three figures and belongs to whoever measures.
package bytesize
