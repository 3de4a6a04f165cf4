package replay

// maxBuffers bounds the buffers that are kept for the next units: as many as the
// renderers fill and one stream has ready. maxBufferBytes is above what a usual
// frame's events take; a larger buffer is not kept.
const (
	maxBuffers     = 2 * renderers
	maxBufferBytes = 2 << 20
)

// buffers are units' lines that were taken by the sink, to be filled again. They
// are safe for concurrent use; the zero value keeps none.
type buffers struct{ free chan []byte }

func newBuffers() buffers { return buffers{make(chan []byte, maxBuffers)} }

// get is an empty buffer, for about so many bytes where it is a new one.
func (b *buffers) get(size int) []byte {
	select {
	case buf := <-b.free:
		return buf[:0]
	default:
		return make([]byte, 0, size)
	}
}

func (b *buffers) put(buf []byte) {
	if cap(buf) == 0 || cap(buf) > maxBufferBytes {
		return
	}
	select {
	case b.free <- buf:
	default:
	}
}
