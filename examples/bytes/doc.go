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
//	go run ./examples/bytes -ranks 2 -steps 300
//	step 50: 5.254 bits per byte
//	step 100: 4.091 bits per byte
//	step 150: 3.852 bits per byte
//	step 200: 3.730 bits per byte
//	step 250: 3.583 bits per byte
//
// A step of 32 windows takes about 0.7 seconds of one core of a 2024 server.
package main
