package logger_test

import (
	"fmt"
	"os"
	"path/filepath"

	"peermesh/trainer/logger"
)

// A loop logs to a console and a table.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	table, err := logger.OpenCSV(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		fmt.Println(err)
		return
	}
	console := &logger.Console{Out: os.Stdout}
	for step := int64(10); step <= 20; step += 10 {
		metrics := map[string]float64{"train/loss": 1 / float64(step)}
		if err := console.Log(step, metrics); err != nil {
			fmt.Println(err)
		}
		if err := table.Log(step, metrics); err != nil {
			fmt.Println(err)
		}
	}
	if err := table.Close(); err != nil {
		fmt.Println(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "metrics.csv"))
	fmt.Printf("%s%v\n", text, err)
	// Output:
	// step 10 train/loss 0.1
	// step 20 train/loss 0.05
	// step,train/loss
	// 10,0.1
	// 20,0.05
	// <nil>
}
