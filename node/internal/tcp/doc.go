// Package tcp is libp2p's TCP transport, tuned.
package tcp
