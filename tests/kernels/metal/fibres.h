// Runs one kernel over a grid on one CPU thread: every thread of a threadgroup is a fibre.
//
// Each simdgroup runs as far as it can before the next one starts, so a missing barrier lets
// it run ahead of all others: what they have not written yet is NaN, what they have not read
// yet is lost. Within a simdgroup each lane runs to its next simd operation in turn. The order
// of simdgroups and of lanes is the caller's. Knows nothing of Metal's language: see metal_stdlib.
#pragma once
#include <setjmp.h>
#include <string.h>
#include <ucontext.h>

// Where the linker puts `threadgroup` variables: one group runs at a time, so they are static.
extern "C" char __start_threadgroup_memory[] __attribute__((weak));
extern "C" char __stop_threadgroup_memory[] __attribute__((weak));

namespace emulated {

constexpr unsigned WIDTH = 32;
constexpr unsigned MAX_THREADS = 1024;  // of a threadgroup, on every Apple GPU

struct Position { unsigned x, y; };

using Combine = void (*)(float* given, float* received, unsigned argument);

enum class Wait { nothing, for_simdgroup, for_threadgroup, finished };

struct Fibre {
    Wait wait;
    int line;  // of the operation or barrier that it waits in
    Combine combine;
    unsigned argument;
    float given, received;
    bool is_started;
    jmp_buf resume;
    ucontext_t start;
    char stack[1 << 16];
};

struct Orders { const unsigned *simdgroups, *lanes; };  // permutations of their numbers

inline Fibre fibres[MAX_THREADS];
inline unsigned current, num_threads;
inline jmp_buf scheduler;
inline int removed_line;  // a barrier there is passed over; 0: none
inline Position group, grid;
inline Position full_size, group_size;  // what was asked for, and what is left of it at an edge
inline void (*body)(void**);
inline void** arguments;

inline Position position_in_grid() {
    return {group.x * full_size.x + current % group_size.x,
            group.y * full_size.y + current / group_size.x};
}

inline unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }

inline unsigned simdgroups_of(unsigned threads) { return (threads + WIDTH - 1) / WIDTH; }

inline unsigned lanes_of(unsigned simdgroup) {
    return smaller(WIDTH, num_threads - simdgroup * WIDTH);
}

// Called by a fibre: let others run until what it waits for has come.
inline void pause(Wait wait, int line) {
    Fibre& self = fibres[current];
    self.wait = wait;
    self.line = line;
    if (!_setjmp(self.resume)) _longjmp(scheduler, 1);
}

inline void barrier(int line) {
    if (line != removed_line) pause(Wait::for_threadgroup, line);
}

inline float together(Combine combine, float given, unsigned argument, int line) {
    Fibre& self = fibres[current];
    self.combine = combine;
    self.given = given;
    self.argument = argument;
    pause(Wait::for_simdgroup, line);
    return fibres[current].received;
}

inline void run_body() {
    body(arguments);
    pause(Wait::finished, 0);
}

inline void resume(unsigned index) {
    current = index;
    if (_setjmp(scheduler)) return;
    Fibre& fibre = fibres[index];
    if (fibre.is_started) _longjmp(fibre.resume, 1);
    fibre.is_started = true;
    setcontext(&fibre.start);
}

inline void prepare(Fibre& fibre) {
    fibre.wait = Wait::nothing;
    fibre.is_started = false;
    getcontext(&fibre.start);
    fibre.start.uc_stack.ss_sp = fibre.stack;
    fibre.start.uc_stack.ss_size = sizeof fibre.stack;
    fibre.start.uc_link = nullptr;  // no body returns: see run_body
    makecontext(&fibre.start, run_body, 0);
}

// Whether all of `count` fibres wait for `wait` in one line.
inline bool all_wait(unsigned first, unsigned count, Wait wait) {
    for (unsigned i = first; i < first + count; ++i)
        if (fibres[i].wait != wait || fibres[i].line != fibres[first].line) return false;
    return true;
}

inline void release(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; ++i) fibres[i].wait = Wait::nothing;
}

inline void exchange(unsigned first) {
    float given[WIDTH], received[WIDTH];
    for (unsigned lane = 0; lane < WIDTH; ++lane) given[lane] = fibres[first + lane].given;
    fibres[first].combine(given, received, fibres[first].argument);
    for (unsigned lane = 0; lane < WIDTH; ++lane) fibres[first + lane].received = received[lane];
    release(first, WIDTH);
}

// Until all of its lanes have finished or wait for the threadgroup; what went wrong, or null.
inline const char* run_simdgroup(unsigned simdgroup, Orders orders) {
    if (simdgroup >= simdgroups_of(num_threads)) return nullptr;  // beyond the edge of the grid
    unsigned first = simdgroup * WIDTH, count = lanes_of(simdgroup);
    while (true) {
        for (unsigned i = 0; i < WIDTH; ++i) {
            unsigned lane = orders.lanes[i];
            if (lane < count && fibres[first + lane].wait == Wait::nothing) resume(first + lane);
        }
        bool is_simd = false;
        for (unsigned i = first; i < first + count; ++i)
            is_simd |= fibres[i].wait == Wait::for_simdgroup;
        if (!is_simd) return nullptr;
        if (count < WIDTH || !all_wait(first, WIDTH, Wait::for_simdgroup))
            return "a simd operation that not all lanes of the simdgroup reach";
        exchange(first);
    }
}

inline const char* run_group(Orders orders) {
    memset(__start_threadgroup_memory, 0xff,  // NaN in every format
           __stop_threadgroup_memory - __start_threadgroup_memory);
    for (unsigned i = 0; i < num_threads; ++i) prepare(fibres[i]);
    unsigned num_simdgroups = simdgroups_of(full_size.x * full_size.y);
    while (!all_wait(0, num_threads, Wait::finished)) {
        for (unsigned i = 0; i < num_simdgroups; ++i)
            if (const char* error = run_simdgroup(orders.simdgroups[i], orders)) return error;
        if (all_wait(0, num_threads, Wait::for_threadgroup)) release(0, num_threads);
        else if (!all_wait(0, num_threads, Wait::finished))
            return "a barrier that not all threads of the threadgroup reach";
    }
    return nullptr;
}

// A whole grid, as `dispatchThreads:threadsPerThreadgroup:` does; what went wrong, or null.
inline const char* dispatch(void (*kernel_body)(void**), void** kernel_arguments,
                            Position threads, Position size, Orders orders) {
    body = kernel_body;
    arguments = kernel_arguments;
    grid = threads;
    full_size = size;
    for (group.y = 0; group.y * size.y < grid.y; ++group.y)
        for (group.x = 0; group.x * size.x < grid.x; ++group.x) {
            group_size = {smaller(size.x, grid.x - group.x * size.x),
                          smaller(size.y, grid.y - group.y * size.y)};
            num_threads = group_size.x * group_size.y;
            if (const char* error = run_group(orders)) return error;
        }
    return nullptr;
}

}  // namespace emulated
