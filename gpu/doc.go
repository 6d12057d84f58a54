// Package gpu lets a tensor live in the memory of an NVIDIA GPU and take part in every
// operation. It opens the driver's library when it is first asked to, without cgo and
// without CUDA's toolkit: one binary, built anywhere, uses what it finds, and says
// [ErrUnavailable] where there is nothing. [Look] says what was found, and of what is
// missing what to do about it; [Check] tries all of it on a device.
//
//	d, err := gpu.Open(gpu.Config{})           // device 0
//	defer d.Close()                            // and all that it made
//	x, err := d.Alloc(tensor.Float32, 1<<20)   // zeros on the device
//	err = g.AllReduce(ctx, x, tensor.Avg).Wait()
//
// # Memory
//
// A [Memory] is a tensor.Memory, which is all that package ops knows of it: a schedule
// reads chunks from a device, sends them over the network, and folds what arrives
// where it belongs. Data crosses in chunks of pinned host memory, some of them
// at once, on one stream for each direction, so that lanes which read, lanes which
// fold and the network work side by side. A fold is done on the device by a kernel,
// and so are the multiplication and the division that make [tensor.PremulSum] and
// [tensor.Avg]. Every kernel gives the bits that the host's arithmetic gives, so that
// ranks with a GPU and ranks without agree. The kernels are text, which the driver
// compiles; where it cannot, the host does the sums, and only time is lost.
//
// A method of Memory returns when it is done, not when it is queued. A queued write would
// overlap with the next message, but lanes do so already; and what an ops.Work calls
// done would not be, for another stream. An error comes from the call that it belongs to.
//
// # Order
//
// A program that computes on streams of its own orders an operation after them and them
// after it, and does not wait for either:
//
//	m.After(s)                            // what s computes, then the operation
//	w := g.AllReduce(ctx, x, tensor.Avg)
//	s.Hold(w.Done())                      // then what is queued on s from here on
//
// [Memory.After] has whoever uses the memory next wait, a lane of the Work; other memory is
// not held up. For [Stream.Hold] the stream calls the host, where a thread of the driver's
// waits for the Work. Such a thread may serve all streams: never let the Work that one
// stream waits for depend on what another queued behind a Hold.
//
// # Threads
//
// A CUDA context belongs to an OS thread, and a goroutine to none. Each call locks its
// goroutine to a thread, makes the context current and calls, in less than a
// microsecond. Nothing has to be pinned by the caller, and everything may be called from
// any goroutine.
//
// # Closing
//
// What a [Device] made, it frees in Close, but that is a net: [Device.Leaks] names what has
// been forgotten, for a test to look at. Closing waits for what uses a thing, and a
// thing that is closed gives [ErrClosed].
//
// # Kernels of a program's own
//
// [Device.Load] compiles PTX text to a [Module], and [Stream.Launch] queues a [Kernel] of it
// on memory and numbers. Package gpu/convnet trains a network with such kernels.
//
// # Several GPUs
//
// A [Comm] is an NCCL communicator of GPUs of one host. NCCL has no authentication and
// blocks for ever by nature: so its sockets listen on the loopback interface, unless
// NCCL_SOCKET_IFNAME says otherwise; a [UniqueID] is for those alone who are proven to
// be on this host, which is what a [Witness] is for; and its calls are polled and aborted
// with their context. It refuses two ranks on one GPU. [Arrange] says of ranks, of which
// each host and GPU is known, which of them speak for a GPU and so belong in it.
// [Comm.AllReduceAcross] reduces inside each host, over the network and inside again.
//
// # Errors
//
// A call of a library that fails is an [*Error] with the call's name, the code and the
// library's words for it. errors.Is finds [ErrOutOfMemory], whose text has the sizes,
// and [ErrLost]: the device is of no more use to this process. An operation on
// a tensor there fails with it, and so the world learns the cause.
package gpu
