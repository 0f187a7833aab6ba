/* pager: long output on a terminal, page by page, as git shows it.
 *
 * The program is $DROVER_PAGER, else $PAGER, else less, with the options -FRX where $LESS says none: what
 * fits on the screen is printed and no more. An empty value or `cat` means none.
 */
#pragma once

/* From now on standard output, and standard error where it is a terminal, go to the pager. Nothing happens
 * when there is none. */
void pager_start(void);
/* All is written: waits until the user has seen enough. No-op when none was started. */
void pager_end(void);
