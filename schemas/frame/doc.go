// Package frame is the codec of frames: many events of one topic, month and lane as
// columns.
//
// # Model
//
// A frame is one ClickHouse Native block in ClickHouse's own compressed framing: a
// checksum, the method (ZSTD), both sizes, and the block. A Builder gathers events and encodes them. A Reader opens a frame and walks every
// column with bounds, so that what it accepts ClickHouse accepts too. A LineWriter
// prints the events of an open frame as ClickHouse prints its rows.
//
// # Who is authoritative
//
// The bytes of a frame never change after they were encoded. Its headers
// (schemas.Frame) repeat what is in it, and Reader.Check compares the two. The columns
// are those of schemas.Topic.FrameColumns, in that order.
//
// # Failures
//
// Every refusal is one of the errors of schemas: ErrFrameCorrupt, ErrFrameTooLarge,
// ErrFrameColumns, ErrFrameSchema, ErrFrameMonth, ErrFrameLies, ErrValue, ErrLabels, ErrLane, ErrSameID, ErrID. A
// Reader that refused a frame holds none, and may be used again. Nothing here does I/O or
// starts a goroutine. Memory is bounded by the limits of schemas (MaxFrameBytes,
// MaxFrameRawBytes), also for bytes that lie about their size.
package frame
