/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * load-npb ep|cg|mg ROUNDS: an OpenMP program in the manner of three kernels of the NAS Parallel Benchmarks (Bailey et al. 1991).
 * ep: random numbers, no thread waits until the end. cg: conjugate gradients on a sparse matrix, three barriers an iteration. mg:
 * sweeps over grids of four sizes, a barrier each. The numbers of threads and the way they wait are those of the environment. It
 * prints a sum, so that the compiler leaves nothing out.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 1 << 20, ROWS = 16384, NONZEROS = 9, ITERATIONS = 25, EDGE = 48, LEVELS = 4 };

/* Counts the pairs of random numbers in the unit circle. */
static double ep(void)
{
    long inside = 0;
#pragma omp parallel for reduction(+ : inside) schedule(static)
    for (int i = 0; i < 64; i++) {
        uint64_t seed = (uint64_t)i * 271828183 + 1;
        for (int k = 0; k < PAIRS / 64; k++) {
            double at[2];
            for (int n = 0; n < 2; n++) {
                seed = seed * 6364136223846793005U + 1442695040888963407U;
                at[n] = (double)(seed >> 32) / 2147483648.0 - 1;
            }
            inside += at[0] * at[0] + at[1] * at[1] <= 1;
        }
    }
    return (double)inside;
}

static int column(int row, int k)
{
    return (int)((unsigned)(row + k * k * 97 * (k % 2 ? 1 : ROWS - 1)) % ROWS);
}

static double x[ROWS], r[ROWS], p[ROWS], q[ROWS];

static double multiply(void)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = 0; i < ROWS; i++) {
        q[i] = (NONZEROS + 1) * p[i];
        for (int k = 1; k < NONZEROS; k++)
            q[i] -= p[column(i, k)] * 0.5;
        sum += p[i] * q[i];
    }
    return sum;
}

static double step(double alpha)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int i = 0; i < ROWS; i++) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        sum += r[i] * r[i];
    }
    return sum;
}

static double cg(void)
{
    double rho = 0;
    for (int i = 0; i < ROWS; i++) {
        x[i] = 0;
        p[i] = r[i] = 1.0 / (1 + i % 7);
        rho += r[i] * r[i];
    }
    for (int n = 0; n < ITERATIONS; n++) {
        const double pq = multiply(), next = step(pq > 0 ? rho / pq : 0), beta = rho > 0 ? next / rho : 0;
        rho = next;
#pragma omp parallel for schedule(static)
        for (int i = 0; i < ROWS; i++)
            p[i] = r[i] + beta * p[i];
    }
    return rho + x[1];
}

static double grid[2][EDGE + 2][EDGE + 2][EDGE + 2];

/* One sweep over a grid of this edge. */
static double smooth(int edge, int from)
{
    double change = 0;
#pragma omp parallel for reduction(+ : change) schedule(static)
    for (int i = 1; i <= edge; i++)
        for (int j = 1; j <= edge; j++)
            for (int k = 1; k <= edge; k++) {
                double(*g)[EDGE + 2][EDGE + 2] = grid[from];
                const double sum = g[i - 1][j][k] + g[i + 1][j][k] + g[i][j - 1][k] + g[i][j + 1][k] + g[i][j][k - 1] +
                                   g[i][j][k + 1];
                grid[!from][i][j][k] = sum / 6 + 0.001;
                change += grid[!from][i][j][k] - g[i][j][k];
            }
    return change;
}

/* Down to the smallest grid, and up again. */
static double mg(void)
{
    double change = 0;
    for (int n = -LEVELS; n <= LEVELS; n++)
        for (int sweep = 0; sweep < 2; sweep++)
            change += smooth(EDGE >> (LEVELS - abs(n)), sweep);
    return change;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        double (*run)(void);
    } kernels[] = {{"ep", ep}, {"cg", cg}, {"mg", mg}};
    for (size_t i = 0; argc == 3 && i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(argv[1], kernels[i].name) != 0)
            continue;
        double sum = 0;
        for (int left = atoi(argv[2]); left > 0; left--)
            sum += kernels[i].run();
        printf("%g\n", sum);
        return 0;
    }
    fputs("usage: load-npb ep|cg|mg ROUNDS\n", stderr);
    return 2;
}
