/* names: declarations of structs that headers of the core use by pointer only. */
#pragma once

struct ad;
struct bucket;
struct buf;
struct core;
struct core_agent;
struct cost_class;
struct err;
struct event;
struct inputs;
struct job;
struct job_class;
struct map;
struct part;
struct queue;
struct request;
struct set;
struct submission;
