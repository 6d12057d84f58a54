package bytesize_test

import (
	"fmt"

	"peermesh/internal/bytesize"
)

func Example() {
	n, err := bytesize.Parse("1.5MiB")
	fmt.Println(n, err)
	fmt.Println(bytesize.Text(64<<10), "or", bytesize.Flag(64<<10))
	fmt.Println(bytesize.Text(500e6), "or", bytesize.Flag(500e6))
	// Output:
	// 1.572864e+06 <nil>
	// 64 KiB or 64KiB
	// 500000000 B or 500MB
}
