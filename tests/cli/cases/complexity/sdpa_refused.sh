# A model that was named must take what is asked.
roofline complexity -m swin_t --attention sdpa
