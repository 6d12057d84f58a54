package main

import (
	"errors"

	"peermesh/trainer"
	"peermesh/trainer/compress"
)

// noCompression is --compress's default.
const noCompression = "none"

// Compression is how gradients travel. The names are those of package compress.
type Compression struct {
	Compress string `default:"none" enum:"none,float16,bfloat16,int8,int4,topk,powersgd,onebit" help:"Average gradients in fewer bytes: float16, bfloat16, int8, int4, onebit, topk or powersgd (none)."`
}

func (c *Compression) validate(net string) error {
	if c.compresses() && net == netTutorial {
		return errors.New("--compress is for --net convnet: the tutorial averages its gradients one by one")
	}
	return nil
}

func (c *Compression) compresses() bool { return c.Compress != "" && c.Compress != noCompression }

// hook is what averages gradients in that way; nil: nothing but an all-reduce.
func (c *Compression) hook(params []*trainer.Param) (compress.Hook, error) {
	if !c.compresses() {
		return nil, nil
	}
	return compress.New(c.Compress, params)
}
