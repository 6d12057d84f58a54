package table_test

import (
	"fmt"
	"log"
	"strings"

	"peermesh/trainer/data"
	"peermesh/trainer/data/table"
)

// Two columns to read and one to tell, as pairs.
func Example() {
	const file = `rooms,age,price
3,12,240
5,30,310
`
	t, err := table.Read[float32](strings.NewReader(file), table.Config{})
	if err != nil {
		log.Fatal(err)
	}
	x, err := t.Select("rooms", "age")
	if err != nil {
		log.Fatal(err)
	}
	y, err := t.Select("price")
	if err != nil {
		log.Fatal(err)
	}
	pairs, err := data.Zip[[]float32, []float32](x, y)
	if err != nil {
		log.Fatal(err)
	}
	for i := range pairs.Len() {
		p, err := pairs.At(i)
		fmt.Println(p.X, p.Y, err)
	}
	_, err = table.Read[float32](strings.NewReader(file+"four,1,200\n"), table.Config{})
	fmt.Println(err)
	// Output:
	// [3 12] [240] <nil>
	// [5 30] [310] <nil>
	// table: line 4, column 1 (rooms): "four" is no number of 32 bits: invalid syntax
}
