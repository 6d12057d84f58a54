// Bytes trains a byte-level transformer on the Go distribution's own source, and has
// it write some.
//
//	go run ./examples/bytes -ranks 2
//	go run ./examples/bytes -text FILE -prompt "Once "
//
// It learns to tell the next byte of windows of 128, from the files of a folder of
// GOROOT/src (-src, as a rule net with all below it: 1.8 MB without tests). Every
// twentieth file is held back, and the loss on those is what counts, in bits per byte:
// 8 is to know nothing.
//
// The network is a decoder as GPT-2 has it, three blocks of width 128 with four heads
// (-blocks, -width), with AdamW, a warm-up, a cosine, and gradients clipped to a norm
// of 1. Ranks are libp2p nodes of this one process; the windows of a step do not
// depend on how many share them out. With -save FILE the model goes to a safetensors
// file, with the names of PyTorch's TransformerEncoder.
//
// # Measured
//
//	go run ./examples/bytes -ranks 2 -steps 600
//	step 50: 5.507 bits per byte
//	step 100: 4.147 bits per byte
//	step 200: 3.775 bits per byte
//	step 300: 3.334 bits per byte
//	step 400: 2.889 bits per byte
//	step 500: 2.653 bits per byte
//	step 600: 2.521 bits per byte
//	2.798 bits per byte of text not seen, 50.4 % of bytes right
//
// A step of 32 windows takes about 0.7 seconds of one core of a 2024 server.
package main
