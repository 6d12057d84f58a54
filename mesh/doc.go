// Package mesh finds the other peers and agrees with them on worlds.
package mesh
