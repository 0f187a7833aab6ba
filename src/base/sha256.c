#include "base/sha256.h"

#define BLOCK 64u

/* The first 32 bits of the fractions of the cube roots of the first 64 primes: FIPS 180-4, 4.2.2. */
static const uint32_t round_constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned by)
{
        return x >> by | x << (32 - by);
}

static void add_block(uint32_t h[8], const unsigned char *block)
{
        uint32_t w[64], v[8];

        for (size_t i = 0; i < 16; i++)
                w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
                       (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
        for (size_t i = 16; i < 64; i++) {
                uint32_t a = w[i - 15], b = w[i - 2];

                w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
                       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
        }
        memcpy(v, h, sizeof(v));
        for (size_t i = 0; i < 64; i++) {
                uint32_t e = v[4], a = v[0];
                uint32_t one = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                               ((e & v[5]) ^ (~e & v[6])) + round_constants[i] + w[i];
                uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                               ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

                memmove(v + 1, v, 7 * sizeof(v[0]));
                v[4] += one;
                v[0] = one + two;
        }
        for (size_t i = 0; i < 8; i++)
                h[i] += v[i];
}

void sha256(struct str bytes, unsigned char ret[SHA256_BYTES])
{
        uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        unsigned char last[2 * BLOCK] = {0};
        uint64_t bits = (uint64_t)bytes.n * 8;
        size_t tail = bytes.n % BLOCK, end = tail < BLOCK - 8 ? BLOCK : 2 * BLOCK;

        for (size_t at = 0; at + BLOCK <= bytes.n; at += BLOCK)
                add_block(h, (const unsigned char *)bytes.p + at);
        if (tail)
                memcpy(last, bytes.p + bytes.n - tail, tail);
        last[tail] = 0x80;
        for (size_t i = 0; i < 8; i++)
                last[end - 1 - i] = (unsigned char)(bits >> 8 * i);
        for (size_t at = 0; at < end; at += BLOCK)
                add_block(h, last + at);
        for (size_t i = 0; i < SHA256_BYTES; i++)
                ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
