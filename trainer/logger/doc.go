// Package logger keeps the numbers of a training run: on a console, in CSV, as JSON
// lines, or in the event files that TensorBoard reads.
//
//	table, err := logger.OpenCSV(filepath.Join(dir, "metrics.csv"))
//	board, err := logger.OpenTensorBoard(dir)
//	run := &fit.Trainer[Batch]{Loggers: []fit.Logger{table, board}, …}
//	err = errors.Join(run.Fit(ctx, world), table.Close(), board.Close())
//
// All have one method, Log(step, metrics), with which package peermesh/trainer/fit uses
// them on rank 0; any loop can. Names such as "train/loss" and "val/loss" are those of
// the metrics, and TensorBoard shows what stands before the slash as a group. Whoever
// opens a file closes it. Each Log is written at once, so a run that is killed has lost
// nothing that it had logged.
//
// A run that resumes appends: to the same CSV and JSON lines, or for TensorBoard in
// another file of the same folder, as TensorBoard wants it. Steps that are taken again
// after a crash are there twice, the later ones last.
//
// No logger is safe for use by several goroutines.
//
// # TensorBoard
//
// An event file is a sequence of records in TFRecord framing, each with its length and
// two checksums, that hold the protocol buffer tensorflow.Event. Of that, scalars need
// five fields, which event.go encodes by hand; a reader in Python that shares no line
// with it, and knows only the format's description, is in testdata.
//
//	record   8  length n, little-endian     event    1  double  wall_time, seconds
//	         4  masked CRC-32C of those 8            2  int64   step
//	         n  the event                            3  string  file_version, in the first
//	         4  masked CRC-32C of those n            5  message summary
//	masked   (crc>>15 | crc<<17) + 0xa282ead8          summary  1  message value, repeated
//	                                                     value  1  string  tag
//	                                                            2  float   simple_value
package logger
