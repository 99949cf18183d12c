/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An OpenMP program that reads its standard input line by line. It enters the state that the line names, prints a line when
 * all its threads are in that state, and stays so until the next line comes.
 *
 *   serial        the initial thread works
 *   parallel N    a region of N threads, all of which work
 *   barrier N     a region of N threads; the initial one works, the others wait at a barrier
 *   task N        the same, but one of the waiting threads runs a task
 *   nested N      a region of two threads, each with one of N
 *   threads N     a thread that has never used OpenMP does "parallel N"
 *   end
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <omp.h>

static volatile int go_on;

static void answer(void)
{
    puts("so");
    fflush(stdout);
}

static void work_until_input(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&in, 1, 0) == 0)
        ;
}

static void work_until_released(void)
{
    while (!go_on)
        ;
}

/* Sleeps long enough for the other threads to begin their wait, works until there is input, and releases them. */
static void lead(void)
{
    usleep(100000);
    answer();
    work_until_input();
    go_on = 1;
}

static void parallel(int n)
{
    go_on = 0;
#pragma omp parallel num_threads(n)
    {
        if (omp_get_thread_num() == 0)
            lead();
        else
            work_until_released();
    }
}

static void barrier(int n)
{
#pragma omp parallel num_threads(n)
    {
        if (omp_get_thread_num() == 0)
            lead();
#pragma omp barrier
    }
}

static void task(int n)
{
    go_on = 0;
#pragma omp parallel num_threads(n)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task
            work_until_released();
            lead();
        }
#pragma omp barrier
    }
}

static void nested(int n)
{
    omp_set_max_active_levels(2);
    go_on = 0;
#pragma omp parallel num_threads(2)
    {
        const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(n)
        {
            if (outer == 0 && omp_get_thread_num() == 0)
                lead();
            else
                work_until_released();
        }
    }
}

static void *in_thread(void *n)
{
    parallel(*(int *)n);
    return NULL;
}

static int do_step(const char *verb, int n)
{
    pthread_t thread;
    if (strcmp(verb, "serial") == 0) {
        answer();
        work_until_input();
    } else if (strcmp(verb, "parallel") == 0) {
        parallel(n);
    } else if (strcmp(verb, "barrier") == 0) {
        barrier(n);
    } else if (strcmp(verb, "task") == 0) {
        task(n);
    } else if (strcmp(verb, "nested") == 0) {
        nested(n);
    } else if (strcmp(verb, "threads") == 0) {
        if (pthread_create(&thread, NULL, in_thread, &n) != 0 || pthread_join(thread, NULL) != 0)
            return -1;
    } else {
        return -1;
    }
    return 0;
}

int main(void)
{
    char verb[32];
    int n = 1;
    /* Without a buffer, poll(2) on the descriptor tells whether a line is left to read. */
    setvbuf(stdin, NULL, _IONBF, 0);
    omp_get_max_threads();
    while (scanf("%31s", verb) == 1 && strcmp(verb, "end") != 0) {
        if (strcmp(verb, "serial") != 0 && scanf("%d", &n) != 1)
            return 2;
        if (do_step(verb, n) < 0)
            return 2;
    }
    return 0;
}
