// Paged attention on Apple GPUs: store the new keys and values, then attend to them.
//
// Emulated in tests, not yet run on hardware (tests/kernels/metal compiles this very file with g++).
// Knows ELEMENT (float, half or bfloat), HEAD_DIM, PAGE_SIZE, SIMDGROUPS (of a threadgroup) and
// TILE_ROWS (query rows of a prefill threadgroup), which metal_paged.py defines above this text;
// knows nothing of layers or sequences beyond their page tables. Only ASCII: torch reads no more.
//
// Both kernels fold keys into a running softmax (arXiv 1805.02867): the highest score so far,
// the total of the weights below it, and the weighted sum of values, which fade when a higher
// score turns up. NEVER stands for minus infinity, which fast-math compilers may drop.
#include <metal_stdlib>
using namespace metal;

#define LANES 32  // threads of a simdgroup, on every Apple GPU
#define DIMS ((HEAD_DIM + LANES - 1) / LANES)  // of a head, held by one lane: lane, lane + 32, ...
#define ROWS (TILE_ROWS / SIMDGROUPS)  // of a tile, held by one simdgroup
#define NEVER -3.0e38f

static_assert(sizeof(ELEMENT) * LANES * HEAD_DIM <= 32768, "a threadgroup has 32 KiB of memory");
static_assert(TILE_ROWS % SIMDGROUPS == 0, "each simdgroup of a tile has as many rows");

struct Tile {  // new tokens of one sequence that a threadgroup answers
    int row;  // the first of them among the step's T
    int count;
    int table;  // where the sequence's page table begins in page_tables
    int position;  // of the first of them in its sequence
};

struct Sizes {
    int heads;
    int kv_heads;
    int window;  // a token sees itself and the window - 1 before it
};

// Where the key (or value) of one token and one head begins in the pages.
inline ulong start_of(device const int* table, int position, int kv_head, constant Sizes& sizes) {
    ulong slot = ulong(table[position / PAGE_SIZE]) * PAGE_SIZE + position % PAGE_SIZE;
    return (slot * sizes.kv_heads + kv_head) * HEAD_DIM;
}

inline int first_seen(int position, constant Sizes& sizes) {
    return max(0, position - sizes.window + 1);
}

// One thread an element: (Hkv * D, T) of them.
kernel void store(
    device const ELEMENT* key [[buffer(0)]],
    device const ELEMENT* value [[buffer(1)]],
    device ELEMENT* key_pages [[buffer(2)]],
    device ELEMENT* value_pages [[buffer(3)]],
    device const int* slots [[buffer(4)]],
    uint2 place [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]])
{
    ulong from = ulong(place.y) * grid.x + place.x;
    ulong to = ulong(slots[place.y]) * grid.x + place.x;
    key_pages[to] = key[from];
    value_pages[to] = value[from];
}

// A threadgroup a (sequence with one new token, head). Simdgroup s takes tokens s,
// s + SIMDGROUPS, ... of the context, its lanes the dimensions; then the simdgroups merge.
[[max_total_threads_per_threadgroup(SIMDGROUPS * LANES)]]
kernel void decode(
    device const ELEMENT* query [[buffer(0)]],
    device const ELEMENT* key_pages [[buffer(1)]],
    device const ELEMENT* value_pages [[buffer(2)]],
    device ELEMENT* output [[buffer(3)]],
    device const int* page_tables [[buffer(4)]],
    device const Tile* tiles [[buffer(5)]],
    constant Sizes& sizes [[buffer(6)]],
    constant float& scale [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]])
{
    threadgroup float highests[SIMDGROUPS];
    threadgroup float totals[SIMDGROUPS];
    threadgroup float sums[SIMDGROUPS * HEAD_DIM];

    Tile tile = tiles[group.x];
    int head = group.y;
    int kv_head = head / (sizes.heads / sizes.kv_heads);
    ulong answer = (ulong(tile.row) * sizes.heads + head) * HEAD_DIM;

    float asked[DIMS];
    float sum[DIMS];
    for (uint i = 0; i < DIMS; ++i) {
        uint dim = lane + i * LANES;
        asked[i] = dim < HEAD_DIM ? float(query[answer + dim]) * scale : 0.0f;
        sum[i] = 0.0f;
    }

    float highest = NEVER;
    float total = 0.0f;
    int first = first_seen(tile.position, sizes);
    for (int position = first + simdgroup; position <= tile.position; position += SIMDGROUPS) {
        ulong start = start_of(page_tables + tile.table, position, kv_head, sizes);
        float score = 0.0f;
        for (uint i = 0; i < DIMS; ++i) {
            uint dim = lane + i * LANES;
            if (dim < HEAD_DIM) score += asked[i] * float(key_pages[start + dim]);
        }
        score = simd_sum(score);

        float higher = max(highest, score);
        float weight = exp(score - higher);
        float fade = exp(highest - higher);
        total = total * fade + weight;
        highest = higher;
        for (uint i = 0; i < DIMS; ++i) {
            uint dim = lane + i * LANES;
            if (dim < HEAD_DIM) sum[i] = sum[i] * fade + weight * float(value_pages[start + dim]);
        }
    }

    highests[simdgroup] = highest;  // all lanes write the same
    totals[simdgroup] = total;
    for (uint i = 0; i < DIMS; ++i) {
        uint dim = lane + i * LANES;
        if (dim < HEAD_DIM) sums[simdgroup * HEAD_DIM + dim] = sum[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    highest = NEVER;
    for (uint s = 0; s < SIMDGROUPS; ++s) highest = max(highest, highests[s]);
    total = 0.0f;
    for (uint s = 0; s < SIMDGROUPS; ++s) total += totals[s] * exp(highests[s] - highest);
    for (uint dim = index; dim < HEAD_DIM; dim += SIMDGROUPS * LANES) {
        float merged = 0.0f;
        for (uint s = 0; s < SIMDGROUPS; ++s)
            merged += sums[s * HEAD_DIM + dim] * exp(highests[s] - highest);
        output[answer + dim] = ELEMENT(merged / total);
    }
}

// A threadgroup a (tile of up to TILE_ROWS new tokens of one sequence, head). The context passes
// through `staged` in blocks of 32 tokens: first their keys, of which each lane scores one for
// each row of its simdgroup, then their values, of which each lane sums its dimensions.
// A block that a row does not see leaves it as it was, so a row does not depend on its tile.
[[max_total_threads_per_threadgroup(SIMDGROUPS * LANES)]]
kernel void prefill(
    device const ELEMENT* query [[buffer(0)]],
    device const ELEMENT* key_pages [[buffer(1)]],
    device const ELEMENT* value_pages [[buffer(2)]],
    device ELEMENT* output [[buffer(3)]],
    device const int* page_tables [[buffer(4)]],
    device const Tile* tiles [[buffer(5)]],
    constant Sizes& sizes [[buffer(6)]],
    constant float& scale [[buffer(7)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]])
{
    threadgroup ELEMENT staged[LANES * HEAD_DIM];

    Tile tile = tiles[group.x];
    int head = group.y;
    int kv_head = head / (sizes.heads / sizes.kv_heads);
    device const int* table = page_tables + tile.table;

    float highest[ROWS];
    float total[ROWS];
    float weight[ROWS];  // of the block's token that this lane scores
    float sum[ROWS][DIMS];
    for (uint r = 0; r < ROWS; ++r) {
        highest[r] = NEVER;
        total[r] = 0.0f;
        for (uint i = 0; i < DIMS; ++i) sum[r][i] = 0.0f;
    }

    int last = tile.position + tile.count - 1;
    int first = first_seen(tile.position, sizes) / LANES * LANES;
    for (int block = first; block <= last; block += LANES) {
        for (uint i = index; i < LANES * HEAD_DIM; i += SIMDGROUPS * LANES) {
            uint token = i / HEAD_DIM, dim = i % HEAD_DIM;
            int position = block + token;  // beyond the last lies what nobody has written
            staged[dim * LANES + token] = position > last
                ? ELEMENT(0.0f) : key_pages[start_of(table, position, kv_head, sizes) + dim];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the keys are staged

        for (uint r = 0; r < ROWS; ++r) {
            int row = simdgroup + r * SIMDGROUPS;
            if (row >= tile.count) continue;
            ulong asked = (ulong(tile.row + row) * sizes.heads + head) * HEAD_DIM;
            float score = 0.0f;
            for (uint dim = 0; dim < HEAD_DIM; ++dim)
                score += float(query[asked + dim]) * float(staged[dim * LANES + lane]);

            int position = block + lane;
            int seer = tile.position + row;
            bool is_seen = position <= seer && position >= first_seen(seer, sizes);
            score = is_seen ? score * scale : NEVER;
            float higher = max(highest[r], simd_max(score));
            weight[r] = is_seen ? exp(score - higher) : 0.0f;
            float fade = exp(highest[r] - higher);
            total[r] = total[r] * fade + simd_sum(weight[r]);
            highest[r] = higher;
            for (uint i = 0; i < DIMS; ++i) sum[r][i] *= fade;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the keys are done with

        for (uint i = index; i < LANES * HEAD_DIM; i += SIMDGROUPS * LANES) {
            int position = block + i / HEAD_DIM;
            staged[i] = position > last ? ELEMENT(0.0f)
                : value_pages[start_of(table, position, kv_head, sizes) + i % HEAD_DIM];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the values are staged

        for (uint r = 0; r < ROWS; ++r) {
            if (int(simdgroup + r * SIMDGROUPS) >= tile.count) continue;
            for (uint token = 0; token < LANES; ++token) {
                float share = simd_broadcast(weight[r], token);
                for (uint i = 0; i < DIMS; ++i) {
                    uint dim = lane + i * LANES;
                    if (dim < HEAD_DIM) sum[r][i] += share * float(staged[token * HEAD_DIM + dim]);
                }
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);  // the values are done with
    }

    for (uint r = 0; r < ROWS; ++r) {
        int row = simdgroup + r * SIMDGROUPS;
        if (row >= tile.count) continue;
        ulong answer = (ulong(tile.row + row) * sizes.heads + head) * HEAD_DIM;
        for (uint i = 0; i < DIMS; ++i) {
            uint dim = lane + i * LANES;
            if (dim < HEAD_DIM) output[answer + dim] = ELEMENT(sum[r][i] / total[r]);
        }
    }
}
