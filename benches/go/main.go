// The workloads of benches/scheduler.rs and benches/net.rs as a Go programmer writes them.
//
// Prints the nanoseconds per operation of the workload named on the command line, after a warm-up of the same.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// A pass does as many operations as it returns.
var workloads = map[string]func() int{
	"spawn and join":       spawnJoin,
	"yield":                yields,
	"oneshots, 1000 pairs": func() int { return oneshots(1000) },
	"oneshots, 1 pair":     func() int { return oneshots(1) },
	"channels, 1000 pairs": func() int { return channels(1000) },
	"channels, 1 pair":     func() int { return channels(1) },
	"chained spawn":        chainedSpawn,
	"skynet":               skynet,
	"timers, 100 tasks":    func() int { return timers(100) },
	"timers, 1 task":       func() int { return timers(1) },
	"mutex":                mutex,
	"TCP echo, 64":         func() int { return tcpEcho(64) },
	"TCP echo, 8":          func() int { return tcpEcho(8) },
	"TCP echo, 1":          func() int { return tcpEcho(1) },
}

func main() {
	runtime.GOMAXPROCS(2)
	pass, ok := workloads[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such workload")
		os.Exit(2)
	}
	pass()
	start := time.Now()
	operations := pass()
	fmt.Println(float64(time.Since(start).Nanoseconds()) / float64(operations))
}

// A goroutine has no output: one channel each is what stands for a join handle.
func spawnJoin() int {
	const tasks = 100_000
	outputs := make([]chan int, tasks)
	for i := range outputs {
		output := make(chan int, 1)
		outputs[i] = output
		go func() { output <- i }()
	}
	for i, output := range outputs {
		if <-output != i {
			panic("another task's output")
		}
	}
	return tasks
}

// Runs f in n goroutines and waits for all.
func parallel(n int, f func()) {
	var group sync.WaitGroup
	for range n {
		group.Go(f)
	}
	group.Wait()
}

func yields() int {
	const tasks, each = 1000, 200
	parallel(tasks, func() {
		for range each {
			runtime.Gosched()
		}
	})
	return tasks * each
}

func oneshots(pairs int) int {
	trips := 100_000 / pairs
	parallel(pairs, func() {
		for range trips {
			ping, pong := make(chan struct{}, 1), make(chan struct{}, 1)
			go func() {
				<-ping
				pong <- struct{}{}
			}()
			ping <- struct{}{}
			<-pong
		}
	})
	return trips * pairs
}

func channels(pairs int) int {
	trips := 100_000 / pairs
	parallel(pairs, func() {
		ping, pong := make(chan int, 1), make(chan int, 1)
		go func() {
			for i := range ping {
				pong <- i
			}
		}()
		for i := range trips {
			ping <- i
			<-pong
		}
		close(ping)
	})
	return trips * pairs
}

func chainedSpawn() int {
	const hops = 100_000
	done := make(chan struct{})
	var hop func(left int)
	hop = func(left int) {
		if left == 0 {
			close(done)
		} else {
			go hop(left - 1)
		}
	}
	hop(hops)
	<-done
	return hops
}

func node(number, leaves int, sums chan<- int) {
	if leaves == 1 {
		sums <- number
		return
	}
	leaves /= 10
	children := make(chan int, 10)
	for i := range 10 {
		go node(number+i*leaves, leaves, children)
	}
	sum := 0
	for range 10 {
		sum += <-children
	}
	sums <- sum
}

func skynet() int {
	sums := make(chan int, 1)
	go node(0, 1_000_000, sums)
	if <-sums != 499_999_500_000 {
		panic("a wrong sum")
	}
	return 1_000_000
}

func timers(tasks int) int {
	const made = 100_000
	parallel(tasks, func() {
		for range made / tasks {
			timer := time.NewTimer(10 * time.Second)
			select {
			case <-timer.C:
				panic("ten seconds are not over")
			default:
			}
			timer.Stop()
		}
	})
	return made
}

func mutex() int {
	const tasks, locks = 100, 1000
	var lock sync.Mutex
	count := 0
	parallel(tasks, func() {
		for range locks {
			lock.Lock()
			count++
			lock.Unlock()
		}
	})
	return tasks * locks
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func tcpEcho(connections int) int {
	trips := 40_000 / connections
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	go func() {
		for {
			stream, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer stream.Close()
				buf := make([]byte, 64)
				for {
					if _, err := io.ReadFull(stream, buf); err != nil {
						return
					}
					_, err := stream.Write(buf)
					check(err)
				}
			}()
		}
	}()
	parallel(connections, func() {
		stream, err := net.Dial("tcp", listener.Addr().String())
		check(err)
		defer stream.Close()
		buf := make([]byte, 64)
		for range trips {
			_, err := stream.Write(buf)
			check(err)
			_, err = io.ReadFull(stream, buf)
			check(err)
		}
	})
	return trips * connections
}
