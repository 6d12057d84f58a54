package main

import (
	"context"
	"math"
	"math/rand/v2"

	"peermesh/trainer/nn/layers"
)

// generate goes on from a prompt by n bytes, each drawn from what the network holds
// for likely, raised to the power of 1/temperature. What is more than a context back
// is forgotten. Behind the text the window has zeros, which no position before them
// looks at.
func generate(ctx context.Context, net *layers.Net, prompt string, n int, temperature float64, r *rand.Rand) (string, error) {
	size := net.Out()[0]
	text := []byte(prompt)
	window := make([]float32, size)
	for range n {
		seen := text[max(0, len(text)-size):]
		for i := range window {
			window[i] = 0
			if i < len(seen) {
				window[i] = float32(seen[i])
			}
		}
		z, err := net.Forward(ctx, window)
		if err != nil {
			return "", err
		}
		classes := len(z) / size
		text = append(text, byte(draw(z[(len(seen)-1)*classes:][:classes], temperature, r)))
	}
	return string(text), nil
}

// draw is a class by softmax(z/temperature).
func draw(z []float32, temperature float64, r *rand.Rand) int {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	weights, sum := make([]float64, len(z)), 0.0
	for i, v := range z {
		weights[i] = math.Exp(float64(v-top) / temperature)
		sum += weights[i]
	}
	at := r.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(z) - 1
}
