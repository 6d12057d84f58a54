package safetensors_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"peermesh/ops/tensor"
	"peermesh/trainer"
	"peermesh/trainer/safetensors"
)

// A model is saved in half of its bytes, and loaded into another of full precision.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")

	weight := tensor.New(tensor.Float32, 2, 3)
	params := []*trainer.Param{{Name: "fc.weight", Value: weight}, {Name: "fc.bias", Value: tensor.Of([]float32{1, -2.5})}}
	err = safetensors.Save(path, params, safetensors.Options{
		Metadata: map[string]string{"format": "pt"},
		DType:    tensor.Float16,
	})
	if err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		fmt.Println(t)
	}
	bias := make([]float32, 2)
	params[1].Value = tensor.Of(bias)
	if err := f.Load(params, safetensors.LoadOptions{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bias)
	// Output:
	// "fc.bias" float16[2]
	// "fc.weight" float16[2 3]
	// [1 -2.5]
}

// A file whose names begin with another prefix than the model's.
func ExampleFile_Load() {
	var file bytes.Buffer
	theirs := []*trainer.Param{{Name: "model.fc.bias", Value: tensor.Of([]float32{1, 2})}}
	if err := safetensors.Write(&file, theirs, safetensors.Options{}); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.New(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		log.Fatal(err)
	}
	bias := make([]float64, 2)
	ours := []*trainer.Param{{Name: "fc.bias", Value: tensor.Of(bias)}}
	fmt.Println(f.Load(ours, safetensors.LoadOptions{}))
	err = f.Load(ours, safetensors.LoadOptions{Rename: func(name string) string { return "model." + name }})
	fmt.Println(bias, err)

	renamed := safetensors.Options{Rename: func(name string) string { return strings.TrimPrefix(name, "model.") }}
	fmt.Println(safetensors.Write(&file, theirs, renamed))
	// Output:
	// safetensors: the file's tensors are not the model's: 1 missing (fc.bias), 1 unexpected (model.fc.bias)
	// [1 2] <nil>
	// <nil>
}
