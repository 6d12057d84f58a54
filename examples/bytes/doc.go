// Bytes trains a byte-level transformer on the Go distribution's own source.
package main
