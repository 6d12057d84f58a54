// Package pipetest is what the connections within one machine are held to: the contract
// of libp2p's streams and connections to the word, errors and limits included, where
// libp2p's own suite looks at bytes for the most part.
//
//	func TestContract(t *testing.T) { pipetest.Run(t, connect, shape) }
//
// [Account] and [Gate] are limits and a gater that a test can turn.
package pipetest
