/* pager: long output on a terminal, page by page, as git shows it.
 *
 * The program is $DROVER_PAGER, else $PAGER, else less, with the options -FRX if $LESS is not set: output
 * that fits on the screen is only printed. An empty value or `cat` means no pager.
 */
#pragma once

/* Starts the pager, if there is one, and redirects standard output to it, and standard error if that is a
 * terminal. */
void pager_start(void);
/* Ends the output and waits until the user leaves the pager. Does nothing if none was started. */
void pager_end(void);
