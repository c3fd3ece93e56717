/* SPDX-License-Identifier: MIT */
/* nothing.c - a program that does nothing, as fast as a program can. */
int main(void)
{
	return 0;
}
